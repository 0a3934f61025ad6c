// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors

// Kernels of the training program. Maps are float, batch x 8 x 8 x channels, channels innermost;
// channel counts are powers of two and multiples of 4. Every sum has a fixed order and no atomics
// are used, so two runs give the same bits.

enum { kSide = 8, kPixels = 64, kTile = 4, kClasses = 10, kPaddedClasses = 16 };

static __device__ __forceinline__ int GlobalThread() {
  return (int)blockIdx.x * (int)blockDim.x + (int)threadIdx.x;
}

// --- input -------------------------------------------------------------------------------------

// Four channels per pixel: its value, its two coordinates and one.
extern "C" __global__ void load_batch(const unsigned char* images, const int* order, int start,
                                      int samples, float* x, int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  const int sample = order[(start + i / kPixels) % samples];
  const int pixel = i % kPixels;
  x[4 * i] = (float)images[sample * kPixels + pixel] * (1.0f / 16.0f);
  x[4 * i + 1] = (float)(pixel % kSide) * (2.0f / 7.0f) - 1.0f;
  x[4 * i + 2] = (float)(pixel / kSide) * (2.0f / 7.0f) - 1.0f;
  x[4 * i + 3] = 1.0f;
}

// --- convolution, 3x3, zero padding ------------------------------------------------------------

// One thread: four output channels of one pixel. Weights: [tap][in][out].
extern "C" __global__ void conv3x3(const float* x, const float* w, float* y, int in, int out,
                                   int n) {
  const int t = GlobalThread();
  if (t >= n) return;
  const int tiles = out / kTile;
  const int co = t % tiles * kTile;
  const int position = t / tiles;  // image * 64 + pixel
  const int column = position % kSide, row = position / kSide % kSide;
  float sum[kTile] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int ky = 0; ky < 3; ++ky) {
    if (row + ky - 1 < 0 || row + ky - 1 >= kSide) continue;
    for (int kx = 0; kx < 3; ++kx) {
      if (column + kx - 1 < 0 || column + kx - 1 >= kSide) continue;
      const float* from = x + (position + (ky - 1) * kSide + kx - 1) * in;
      const float* weight = w + (ky * 3 + kx) * in * out + co;
      for (int ci = 0; ci < in; ++ci) {
        for (int k = 0; k < kTile; ++k) sum[k] += from[ci] * weight[ci * out + k];
      }
    }
  }
  for (int k = 0; k < kTile; ++k) y[position * out + co + k] = sum[k];
}

// The weights with which conv3x3 computes the gradient of its input: taps reversed, [tap][out][in].
extern "C" __global__ void conv3x3_transpose(const float* w, float* wt, int in, int out) {
  const int t = GlobalThread();
  if (t >= 9 * in * out) return;
  const int co = t % out, ci = t / out % in, tap = t / (in * out);
  wt[((8 - tap) * out + co) * in + ci] = w[t];
}

// One thread: a slice of the images, one tap, 4 x 4 channels. Partial sums: [slice][stride].
extern "C" __global__ void conv3x3_gradient(const float* x, const float* dy, float* partial, int in,
                                            int out, int batch, int slices, int stride) {
  const int t = GlobalThread();
  const int in_tiles = in / kTile, out_tiles = out / kTile;
  if (t >= slices * 9 * in_tiles * out_tiles) return;
  const int co = t % out_tiles * kTile, ci = t / out_tiles % in_tiles * kTile;
  const int tap = t / (out_tiles * in_tiles) % 9, slice = t / (out_tiles * in_tiles * 9);
  const int ky = tap / 3 - 1, kx = tap % 3 - 1;
  const int first = slice * batch / slices, last = (slice + 1) * batch / slices;
  const int row_begin = ky < 0 ? 1 : 0, row_end = ky > 0 ? kSide - 1 : kSide;
  const int column_begin = kx < 0 ? 1 : 0, column_end = kx > 0 ? kSide - 1 : kSide;
  float sum[kTile * kTile] = {0.0f};
  for (int image = first; image < last; ++image) {
    for (int row = row_begin; row < row_end; ++row) {
      for (int column = column_begin; column < column_end; ++column) {
        const int position = image * kPixels + row * kSide + column;
        const float* from = x + (position + ky * kSide + kx) * in + ci;
        const float* gradient = dy + position * out + co;
        for (int j = 0; j < kTile; ++j) {
          for (int k = 0; k < kTile; ++k) sum[j * kTile + k] += from[j] * gradient[k];
        }
      }
    }
  }
  float* to = partial + slice * stride + (tap * in + ci) * out + co;
  for (int j = 0; j < kTile; ++j) {
    for (int k = 0; k < kTile; ++k) to[j * out + k] = sum[j * kTile + k];
  }
}

// --- elementwise; `mask` is the number of channels minus one ------------------------------------

extern "C" __global__ void bias_add(const float* x, const float* bias, float* y, int mask, int n) {
  const int i = GlobalThread();
  if (i < n) y[i] = x[i] + bias[i & mask];
}

extern "C" __global__ void affine(const float* x, const float* scale, const float* shift, float* y,
                                  int mask, int n) {
  const int i = GlobalThread();
  if (i < n) y[i] = x[i] * scale[i & mask] + shift[i & mask];
}

extern "C" __global__ void affine_backward(const float* dy, const float* scale, float* dx, int mask,
                                           int n) {
  const int i = GlobalThread();
  if (i < n) dx[i] = dy[i] * scale[i & mask];
}

// A gate that closes for large inputs, so that the product x * gate(x) stays between -1 and 1.
extern "C" __global__ void gate(const float* x, float* y, int n) {
  const int i = GlobalThread();
  if (i < n) y[i] = 1.0f / (1.0f + fabsf(x[i]));
}

extern "C" __global__ void multiply(const float* a, const float* b, float* y, int n) {
  const int i = GlobalThread();
  if (i < n) y[i] = a[i] * b[i];
}

// Gradient of x * gate(x); g is the gate's output.
extern "C" __global__ void gated_backward(const float* dy, const float* x, const float* g,
                                          float* dx, int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  dx[i] = dy[i] * (g[i] - fabsf(x[i]) * g[i] * g[i]);
}

extern "C" __global__ void add(const float* a, const float* b, float* y, int n) {
  const int i = GlobalThread();
  if (i < n) y[i] = a[i] + b[i];
}

// --- gradients of per-channel parameters ---------------------------------------------------------

// One thread: four channels of a slice of the rows (pixels, or samples).
extern "C" __global__ void bias_gradient(const float* dy, float* partial, int channels, int rows,
                                         int slices, int stride) {
  const int t = GlobalThread();
  const int tiles = channels / kTile;
  if (t >= slices * tiles) return;
  const int c = t % tiles * kTile, slice = t / tiles;
  const int first = (int)((long long)slice * rows / slices);
  const int last = (int)((long long)(slice + 1) * rows / slices);
  float sum[kTile] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int row = first; row < last; ++row) {
    for (int k = 0; k < kTile; ++k) sum[k] += dy[row * channels + c + k];
  }
  for (int k = 0; k < kTile; ++k) partial[slice * stride + c + k] = sum[k];
}

extern "C" __global__ void affine_gradient(const float* dy, const float* x, float* scale_partial,
                                           float* shift_partial, int channels, int rows, int slices,
                                           int stride) {
  const int t = GlobalThread();
  const int tiles = channels / kTile;
  if (t >= slices * tiles) return;
  const int c = t % tiles * kTile, slice = t / tiles;
  const int first = (int)((long long)slice * rows / slices);
  const int last = (int)((long long)(slice + 1) * rows / slices);
  float scale[kTile] = {0.0f, 0.0f, 0.0f, 0.0f};
  float shift[kTile] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int row = first; row < last; ++row) {
    for (int k = 0; k < kTile; ++k) {
      const float d = dy[row * channels + c + k];
      scale[k] += d * x[row * channels + c + k];
      shift[k] += d;
    }
  }
  for (int k = 0; k < kTile; ++k) {
    scale_partial[slice * stride + c + k] = scale[k];
    shift_partial[slice * stride + c + k] = shift[k];
  }
}

extern "C" __global__ void reduce_slices(const float* partial, float* gradient, int slices,
                                         int stride) {
  const int i = GlobalThread();
  if (i >= stride) return;
  float sum = 0.0f;
  for (int slice = 0; slice < slices; ++slice) sum += partial[slice * stride + i];
  gradient[i] = sum;
}

// --- pooling: mean of 2x2 ------------------------------------------------------------------------

extern "C" __global__ void pool(const float* x, float* y, int channels, int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  const int c = i % channels, column = i / channels % 4, row = i / channels / 4 % 4;
  const int image = i / channels / 16;
  const float* from = x + (image * kPixels + row * 2 * kSide + column * 2) * channels + c;
  y[i] = 0.25f * (from[0] + from[channels] + from[kSide * channels] + from[(kSide + 1) * channels]);
}

extern "C" __global__ void pool_backward(const float* dy, float* dx, int channels, int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  const int c = i % channels, column = i / channels % kSide, row = i / channels / kSide % kSide;
  const int image = i / channels / kPixels;
  dx[i] = 0.25f * dy[((image * 4 + row / 2) * 4 + column / 2) * channels + c];
}

// --- dense layers: weights [in][out], out a multiple of 8
// -----------------------------------------

extern "C" __global__ void dense(const float* x, const float* w, float* y, int in, int out, int n) {
  const int t = GlobalThread();
  if (t >= n) return;
  const int o = t % (out / 8) * 8, b = t / (out / 8);
  float sum[8] = {0.0f};
  for (int i = 0; i < in; ++i) {
    for (int k = 0; k < 8; ++k) sum[k] += x[b * in + i] * w[i * out + o + k];
  }
  for (int k = 0; k < 8; ++k) y[b * out + o + k] = sum[k];
}

extern "C" __global__ void dense_backward(const float* dy, const float* w, float* dx, int in,
                                          int out, int n) {
  const int t = GlobalThread();
  if (t >= n) return;
  const int i = t % in, b = t / in;
  float sum[8] = {0.0f};
  for (int o = 0; o < out; o += 8) {
    for (int k = 0; k < 8; ++k) sum[k] += dy[b * out + o + k] * w[i * out + o + k];
  }
  dx[t] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

extern "C" __global__ void dense_gradient(const float* x, const float* dy, float* dw, int in,
                                          int out, int batch) {
  const int t = GlobalThread();
  if (t >= in * (out / 8)) return;
  const int o = t % (out / 8) * 8, i = t / (out / 8);
  float sum[8] = {0.0f};
  for (int b = 0; b < batch; ++b) {
    for (int k = 0; k < 8; ++k) sum[k] += x[b * in + i] * dy[b * out + o + k];
  }
  for (int k = 0; k < 8; ++k) dw[i * out + o + k] = sum[k];
}

// --- loss
// -----------------------------------------------------------------------------------------

// Cross entropy of the softmax, and the gradient of its mean. Padding classes take no part.
extern "C" __global__ void softmax_loss(const float* logits, const unsigned char* labels,
                                        const int* order, int start, int samples, float* losses,
                                        float* dlogits, int batch) {
  const int b = GlobalThread();
  if (b >= batch) return;
  const float* row = logits + b * kPaddedClasses;
  const int label = labels[order[(start + b) % samples]];
  float largest = row[0];
  for (int c = 1; c < kClasses; ++c) largest = fmaxf(largest, row[c]);
  float total = 0.0f;
  for (int c = 0; c < kClasses; ++c) total += expf(row[c] - largest);
  losses[b] = logf(total) - (row[label] - largest);
  for (int c = 0; c < kPaddedClasses; ++c) {
    const float p = c < kClasses ? expf(row[c] - largest) / total : 0.0f;
    dlogits[b * kPaddedClasses + c] = (p - (c == label ? 1.0f : 0.0f)) / (float)batch;
  }
}

// One block of 256 threads.
extern "C" __global__ void mean(const float* values, float* result, int n) {
  __shared__ float sums[256];
  const int t = (int)threadIdx.x;
  float sum = 0.0f;
  for (int i = t; i < n; i += 256) sum += values[i];
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) result[0] = sums[0] / (float)n;
}

// --- update
// -----------------------------------------------------------------------------------------

extern "C" __global__ void sgd(float* p, float* velocity, const float* gradient, float rate,
                               float momentum, int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  const float v = momentum * velocity[i] + gradient[i];
  velocity[i] = v;
  p[i] -= rate * v;
}

// correction1, correction2: 1 - beta^step.
extern "C" __global__ void adam(float* p, float* m, float* v, const float* gradient, float rate,
                                float beta1, float beta2, float correction1, float correction2,
                                int n) {
  const int i = GlobalThread();
  if (i >= n) return;
  const float g = gradient[i];
  m[i] = beta1 * m[i] + (1.0f - beta1) * g;
  v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
  p[i] -= rate * (m[i] / correction1) / (sqrtf(v[i] / correction2) + 1e-8f);
}

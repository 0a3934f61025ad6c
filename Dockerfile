# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The image of Sluice. scripts/image makes the same one without a container daemon; tests/image/run compares the two.
#   docker build -t sluice:0.1.0 .
FROM debian:bookworm AS build
WORKDIR /src
COPY scripts/install-deps scripts/lib.sh scripts/
RUN scripts/install-deps
COPY . .
RUN scripts/build release installed \
 && cmake --install build/release --prefix /opt/sluice --strip

FROM debian:bookworm-slim
COPY packaging/runtime-packages.txt /tmp/
# No program of the image changes who it runs as.
RUN apt-get update \
 && sed -E 's/#.*//' /tmp/runtime-packages.txt \
    | xargs env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
 && find / -xdev -type f -perm /6000 -exec chmod a-s '{}' + \
 && rm -rf /tmp/runtime-packages.txt /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /opt/sluice /opt/sluice
ENV PATH=/opt/sluice/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="Lends GPU memory between training jobs while they run" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
# Nobody in particular. What has to be root on a node (the daemon, the device plugin) is told so where it is deployed.
USER 65532
CMD ["sluice", "--help"]

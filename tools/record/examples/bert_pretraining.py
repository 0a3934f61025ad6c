# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A training step of one's own, as sluice-record takes it: BERT's two tasks of pre-training, on 128 words.

sluice-record examples/bert_pretraining.py:make_step --verify 32,13 -o bert-base.trace
"""

import torch
from transformers import BertConfig, BertForPreTraining

WORDS = 128


def make_step(batch: int):
    # The default device is "cuda" in here. Nothing has values: no weights, no data, no memory.
    model = BertForPreTraining(BertConfig(attn_implementation="eager")).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    words, segments, mask, labels = (torch.zeros(batch, WORDS, dtype=torch.int64) for _ in range(4))
    next_sentence = torch.zeros(batch, dtype=torch.int64)

    def step(words, segments, mask, labels, next_sentence):
        loss, _outputs = both_losses(model, words, segments, mask, labels, next_sentence)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, (words, segments, mask, labels, next_sentence)


def both_losses(model, words, segments, mask, labels, next_sentence):
    outputs = model(
        input_ids=words,
        token_type_ids=segments,
        attention_mask=mask,
        labels=labels,
        next_sentence_label=next_sentence,
    )
    return outputs.loss, outputs

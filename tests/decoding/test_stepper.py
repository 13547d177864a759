"""Log-probabilities of one model and of several, by hand."""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD
from transduce.decoding.stepper import ModelStepper, average, forced_log_probs
from transduce.model.seq2seq import Seq2Seq, State, make_batch, source_tensor
from transduce.system.profiling import profiling


class Table(Seq2Seq):
    """The next token depends on the last one, and on the number of source tokens: a table (2, v, v) of logits."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        table = torch.randn(2, 7, 7, generator=torch.Generator().manual_seed(seed))
        self.table = torch.nn.Parameter(table)
        self.drop = torch.nn.Dropout(0.9)

    def encode(self, src: Tensor) -> Tensor:
        return (src != PAD).sum(1) % 2

    def decode(self, tgt: Tensor, memory: Tensor, state: State = None) -> tuple[Tensor, State]:
        rows = memory.repeat_interleave(len(tgt) // len(memory))
        length = tgt.new_zeros(len(tgt)) if state is None else state
        return self.drop(self.table[rows[:, None], tgt]) + length[:, None, None], length + tgt.size(
            1
        )


def log_probs(models: Sequence[Table], parity: int, token: int) -> Tensor:
    each = [model.table[parity, token].softmax(-1) for model in models]
    return torch.stack(each).mean(0).log()


def test_the_mean_of_probabilities_by_hand():
    one, two = torch.tensor([[0.5, 0.25, 0.25]]).log(), torch.tensor([[0.1, 0.1, 0.8]]).log()
    torch.testing.assert_close(average([one, two]).exp(), torch.tensor([[0.3, 0.175, 0.525]]))
    three = average([one, two, two]).exp()
    torch.testing.assert_close(three, torch.tensor([[0.7 / 3, 0.15, 1.85 / 3]]))
    assert average([one]) is one


@torch.no_grad()
def test_rows_are_reordered_and_finished_sentences_are_dropped():
    models = [Table(1).train(), Table(2).train()]
    stepper = ModelStepper(models, source_tensor([[4], [4, 5], [4, 5, 6]]))  # 2, 3 and 4 with EOS
    assert stepper.device == torch.device("cpu") and not any(model.training for model in models)
    first = stepper(torch.tensor([BOS] * 6))
    parities = [0, 0, 1, 1, 0, 0]
    for row, parity in zip(first, parities, strict=True):
        torch.testing.assert_close(row, log_probs(models, parity, BOS))
    stepper.reorder(torch.tensor([3, 2, 5, 5]), torch.tensor([1, 2]))
    second = stepper(torch.tensor([4, 5, 6, 4]))
    for row, parity, token in zip(second, [1, 1, 0, 0], [4, 5, 6, 4], strict=True):
        torch.testing.assert_close(row, log_probs(models, parity, token))
    assert all(state.tolist() == [2] * 4 for state in stepper.states)
    stepper.reorder(torch.tensor([0, 2]))
    assert [len(state) for state in stepper.states] == [2, 2]
    assert [len(memory) for memory in stepper.memories] == [2, 2]


def test_forced_decoding_by_hand():
    models = [Table(1).train(), Table(2).train()]
    batch = make_batch([[4], [4, 5]], [[5, 6], []])
    found = forced_log_probs(models, batch)
    with torch.no_grad():
        first = [log_probs(models, 0, one)[two] for one, two in ((BOS, 5), (5, 6), (6, EOS))]
        second = [log_probs(models, 1, BOS)[EOS], torch.tensor(0.0), torch.tensor(0.0)]
    torch.testing.assert_close(found, torch.stack([torch.stack(first), torch.stack(second)]))


def test_what_a_profile_counts():
    """Source tokens with EOS and padding, sentences once for each search, and a row for each hypothesis and step."""
    with profiling(["encode", "decode"]) as profile:
        stepper = ModelStepper([Table(1), Table(2)], source_tensor([[4], [4, 5]]))
        stepper(torch.tensor([BOS] * 4))
        stepper.reorder(torch.tensor([0, 2]))
        stepper(torch.tensor([BOS] * 2))
    assert profile.counts == {"source tokens": 6, "sentences": 2, "hypotheses": 6}
    assert min(profile.seconds.values()) > 0

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import ConfigError
from bilmo.net.config import BiLMConfig, CellConfig, TableConfig, WordsConfig
from bilmo.net.layers import Layers
from bilmo.net.mix import Mix

from reference import mixed as mixed_by_hand
from strategies import seeds

# B sentences, T tokens, D one direction, L layers above the word

L, D = 2, 3
LENGTHS = (4, 1, 3)
NORMS = (None, "allennlp", "bilm-tf")
HOWS = ("weighted", "top", "mean", "concat", 0, 1, (0, 2))


def padded(sentences, padding=0.0):
    """Sentences (L+1, T, W) as Layers; what stands where there is no token is for the test to choose."""
    longest = max(s.shape[1] for s in sentences)
    values = np.full((len(sentences[0]), len(sentences), longest, sentences[0].shape[2]), padding)
    mask = np.zeros((len(sentences), longest), dtype=bool)
    for row, sentence in enumerate(sentences):
        values[:, row, : sentence.shape[1]] = sentence
        mask[row, : sentence.shape[1]] = True
    return Layers(torch.from_numpy(values), torch.from_numpy(mask))


def draw(seed=0, *, lengths=LENGTHS, layers=L, width=2 * D):
    """Sentences as a network of two directions gives them, layer 0 twice the same word; no mean is 0."""
    random = np.random.default_rng(seed)
    sentences = [random.normal(0.5, 2.0, size=(layers + 1, n, width)) for n in lengths]
    for sentence in sentences:
        sentence[0, :, width // 2 :] = sentence[0, :, : width // 2]
    return sentences


def unpadded(values, lengths):
    return [row[:n].detach().numpy() for row, n in zip(values, lengths, strict=True)]


def assert_rows(found, expected):
    for a, b in zip(unpadded(found, [len(e) for e in expected]), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10, rtol=1e-10)
    for row, e in zip(found, expected, strict=True):
        assert not row[len(e) :].any()


def new(**options):
    """A mix for the networks of this file, in double precision."""
    return Mix(layers=L, width=D, **options).double()


def mix_of(weights, scale, **options):
    mix = new(**options)
    with torch.no_grad():
        mix.weights.copy_(torch.as_tensor(weights))
        mix.scale.fill_(scale)
    return mix


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("own", [False, True])
def test_a_weighted_mix_equals_the_reference(own, norm):
    @settings(max_examples=20)
    @given(seeds(), st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda n: max(n) > 2))
    def check(seed, lengths):
        sentences = draw(seed, lengths=lengths)
        random = np.random.default_rng(seed + 1)
        weights, scale = random.normal(size=(2 if own else 1, L + 1)), random.uniform(0.5, 2)
        mix = mix_of(weights, scale, own=own, norm=norm)
        if norm == "allennlp":  # boundaries count: mix first, then leave them out
            whole = padded(sentences)
            found = Layers(mix(whole).unsqueeze(0), whole.mask).inside().values[0]
        else:
            found = mix(padded(sentences).inside())
        assert_rows(found, mixed_by_hand(sentences, weights, scale, norm))

    check()


def test_the_two_norms_differ_where_boundaries_do():
    sentences = draw()
    layers = padded(sentences)
    with_boundaries = Layers(new(norm="allennlp")(layers).unsqueeze(0), layers.mask).inside()
    without = new(norm="bilm-tf")(layers.inside())
    assert (with_boundaries.values[0] - without).abs().max() > 1e-3


@pytest.mark.parametrize("norm, epsilon", [("allennlp", 1e-13), ("bilm-tf", 1e-12)])
def test_each_norm_has_its_own_epsilon_inside_the_root(norm, epsilon):
    values = 1e-6 * torch.tensor([1.0, -1.0], dtype=torch.float64).reshape(1, 1, 1, 2).repeat(L + 1, 1, 3, D)
    found = new(norm=norm)(Layers(values, torch.ones(1, 3, dtype=torch.bool)))
    torch.testing.assert_close(found, values[0] / (1e-12 + epsilon) ** 0.5, atol=0, rtol=1e-9)


@pytest.mark.parametrize("norm", ["allennlp", "bilm-tf"])
def test_a_normed_layer_has_mean_0_and_variance_1_over_all_real_tokens(norm):
    layers = padded(draw(), padding=100.0)
    mix = mix_of([[0.0, 50.0, 0.0]], 1.0, norm=norm)  # layer 1 alone
    real = mix(layers)[layers.mask]
    assert real.mean().item() == pytest.approx(0, abs=1e-9)
    assert real.var(correction=0).item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("own", [False, True])
def test_a_fresh_weighted_mix_is_the_mean_of_all_layers(own):
    sentences = draw()
    found = new(own=own)(padded(sentences))
    assert_rows(found, [sentence.mean(axis=0) for sentence in sentences])
    torch.testing.assert_close(found, new(how="mean")(padded(sentences)))


def test_own_weights_leave_the_other_direction_alone():
    layers = padded(draw())
    mix = mix_of([[0.0, 0.0, 0.0], [3.0, -1.0, 0.5]], 1.0, own=True)
    plain = new()(layers)
    assert torch.allclose(mix(layers)[..., :D], plain[..., :D])
    assert not torch.allclose(mix(layers)[..., D:], plain[..., D:])


def test_shares_add_up_to_1():
    mix = mix_of([[1.0, -2.0, 0.3], [0.0, 5.0, 0.0]], 7.0, own=True)
    torch.testing.assert_close(mix.shares.sum(dim=1), torch.ones(2, dtype=torch.float64))
    assert (mix.shares > 0).all()


def test_the_top_is_the_last_layer_times_its_scale():
    sentences, mix = draw(), new(how="top")
    assert_rows(mix(padded(sentences)), [s[-1] for s in sentences])
    with torch.no_grad():
        mix.scale.fill_(2.5)
    assert_rows(mix(padded(sentences)), [2.5 * s[-1] for s in sentences])


def test_concat_puts_the_layers_above_the_word_side_by_side():
    sentences = draw()
    found = new(how="concat")(padded(sentences))
    assert_rows(found, [np.concatenate(s[1:], axis=-1) for s in sentences])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_number_is_that_layer(number):
    sentences = draw()
    assert_rows(new(how=number)(padded(sentences)), [s[number] for s in sentences])


@pytest.mark.parametrize("numbers", [[0, 2], (1, 2), [2, 0], [1], [0, 1, 2]])
def test_several_numbers_are_the_mean_of_those_layers(numbers):
    sentences = draw()
    found = new(how=numbers)(padded(sentences))
    assert_rows(found, [s[list(numbers)].mean(axis=0) for s in sentences])


@pytest.mark.parametrize("how", HOWS)
def test_the_word_in_front_is_layer_0_once(how):
    sentences = draw()
    layers = padded(sentences)
    with_word = new(how=how, word=True)(layers)
    assert_rows(with_word[..., :D], [s[0, :, :D] for s in sentences])
    assert torch.equal(with_word[..., D:], new(how=how)(layers))


@pytest.mark.parametrize("m, layers", [(1, 1), (3, 2), (512, 4)])
def test_widths_with_the_word_in_front_are_those_of_the_three_ways(m, layers):
    widths = {
        how: Mix(layers=layers, width=m, how=how, word=True).output_width for how in ("top", "weighted", "concat")
    }
    assert widths == {"top": 3 * m, "weighted": 3 * m, "concat": m + 2 * m * layers}


@pytest.mark.parametrize("word", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("how", HOWS)
def test_the_width_promised_is_the_width_given(how, directions, word):
    mix = new(directions=directions, how=how, word=word)
    layers = padded([s[..., : D * directions] for s in draw()])
    assert mix(layers).shape == (3, max(LENGTHS), mix.output_width)


@pytest.mark.parametrize("how, norm", [*((how, None) for how in HOWS), *(("weighted", n) for n in NORMS[1:])])
def test_what_stands_in_the_padding_never_leaks(how, norm):
    mix = new(how=how, norm=norm, word=True)
    clean, dirty = mix(padded(draw())), mix(padded(draw(), padding=1e3))
    torch.testing.assert_close(dirty, clean, atol=1e-12, rtol=1e-12)
    for row, n in zip(dirty, LENGTHS, strict=True):
        assert not row[n:].any()


def test_without_a_norm_a_vector_does_not_depend_on_its_neighbours_and_with_one_it_does():
    sentences = draw()
    for norm in NORMS:
        mix = new(norm=norm)
        alone, batch = mix(padded(sentences[1:2]))[0, :1], mix(padded(sentences))[1, :1]
        assert torch.allclose(alone, batch) == (norm is None)


def test_l2_is_the_sum_of_squared_weights_without_the_scale():
    mix = mix_of([[1.0, -2.0, 0.5]], 9.0)
    term = mix.l2(0.1)
    assert term.item() == pytest.approx(0.1 * 5.25)
    term.backward()
    torch.testing.assert_close(mix.weights.grad, 0.2 * mix.weights.detach())
    assert mix.scale.grad is None


@pytest.mark.parametrize("how", ["weighted", "concat", 1])
def test_dropout_acts_in_training_only_and_keeps_the_mean(how):
    torch.manual_seed(0)
    layers = Layers(torch.ones(L + 1, 2, 400, 2 * D, dtype=torch.float64), torch.ones(2, 400, dtype=torch.bool))
    mix = new(how=how, dropout=0.25)
    dropped = mix.train()(layers)
    zero, kept = dropped.unique().tolist()
    assert zero == 0 and kept == pytest.approx(4 / 3)
    assert (dropped == 0).double().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(mix.eval()(layers), torch.ones_like(dropped))


def test_no_dropout_is_the_default():
    layers = padded(draw())
    mix = new()
    assert torch.equal(mix.train()(layers), mix.eval()(layers))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("own", [False, True])
def test_gradients_flow_to_weights_scale_and_layers(own, norm):
    layers = padded(draw())
    layers.values.requires_grad_()
    mix = mix_of(np.ones((2 if own else 1, L + 1)), 0.5, own=own, norm=norm)
    (mix(layers) ** 2).sum().backward()
    assert (mix.weights.grad.abs() > 1e-6).all()
    assert mix.scale.grad.abs() > 1e-6
    assert layers.values.grad.abs().sum() > 1e-6


def test_gradients_of_a_mix_agree_with_finite_differences():
    layers = padded(draw(lengths=(2, 1)))
    mix = mix_of([[0.3, -0.2, 0.9]], 1.3, norm="bilm-tf")

    def run(values, weights, scale):
        return torch.func.functional_call(mix, {"weights": weights, "scale": scale}, Layers(values, layers.mask))

    given_ = layers.values.requires_grad_(), mix.weights.detach().requires_grad_()
    assert torch.autograd.gradcheck(run, (*given_, mix.scale.detach().requires_grad_()))


def test_only_what_is_trained_is_a_parameter():
    names = {how: {n for n, _ in new(how=how).named_parameters()} for how in HOWS}
    assert names.pop("weighted") == {"weights", "scale"}
    assert names.pop("top") == {"scale"}
    assert all(not rest for rest in names.values())


@pytest.mark.parametrize(
    "options, says",
    [
        ({"how": "sum"}, r"mix is 'sum'; accepted: weighted, mean, concat, top, or layer numbers"),
        ({"how": 3}, r"numbered 0 \(the word\) to 2; found 3"),
        ({"how": -1}, r"numbered 0 \(the word\) to 2; found -1"),
        ({"how": [0, 7]}, r"numbered 0 \(the word\) to 2; found \[0, 7\]"),
        ({"how": []}, r"numbered 0 \(the word\) to 2; found \[\]"),
        ({"how": [0.5]}, r"numbered 0 \(the word\) to 2; found \[0.5\]"),
        ({"norm": "batch"}, r"norm is 'batch'; accepted: allennlp, bilm-tf, or None"),
        ({"how": "mean", "own": True}, r"own and norm work only with the weighted mix, not with 'mean'"),
        ({"how": "top", "norm": "allennlp"}, r"own and norm work only with the weighted mix, not with 'top'"),
    ],
)
def test_a_mix_that_cannot_be_says_why(options, says):
    with pytest.raises(ConfigError, match=says):
        Mix(layers=L, width=D, **options)


def test_a_mix_for_another_number_of_layers_says_so():
    with pytest.raises(ConfigError, match="needs 2 layers above the word; it got 3"):
        Mix(layers=L, width=D)(padded(draw(layers=3)))


@pytest.mark.parametrize("how", ["mean", "top", "concat", 1])
def test_l2_of_a_mix_without_weights_says_so(how):
    with pytest.raises(ConfigError, match="has no weights"):
        Mix(layers=L, width=D, how=how).l2(1.0)


def test_a_mix_for_a_network_has_its_size():
    words = WordsConfig(table=TableConfig(rows=5, width=6))
    config = BiLMConfig(words=words, cell=CellConfig(cells=12), width=6, layers=3, directions=("backward",))
    mix = Mix.for_network(config, "concat", word=True)
    assert (mix.layers, mix.width, mix.directions, mix.output_width) == (3, 6, 1, 24)

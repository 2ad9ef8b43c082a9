"""A module is an ordinary torch module: loaded, moved, converted, copied and saved, it never blends two models."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError
from bilmo.net.config import CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.store.bundle import Bundle

GRU = CellConfig(kind="gru", cells=8, project=False, cell_clip=None, projection_clip=None)
TEXT = [["The", "cat", "sat"], ["a"], [], ["on", "mats", "and", "hats"]]


def made(seed=0, cell=None) -> Bundle:
    torch.manual_seed(seed)
    words = WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1))
    config = bilmo.BiLMConfig(words=words, cell=cell or CellConfig(cells=24), width=8)
    network = bilmo.BiLM(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Bundle(config, network.state_dict(), layout="test")


@pytest.fixture(params=["lstm", "gru"])
def elmo(request) -> Embedder:
    return Embedder(made(cell=GRU if request.param == "gru" else None), start="zero")


def vectors(module: nn.Module) -> np.ndarray:
    return module(TEXT)[0].detach().double().numpy()


def expected(bundle: Bundle) -> np.ndarray:
    """The mean over layers by a network with these weights, nothing prepared."""
    network, batch = bundle.network().double(), bundle.indexer().batch(TEXT)
    with torch.no_grad():
        layers, _ = network(batch, network.zero_state(len(TEXT)))
    return layers.padded().inside().values.mean(dim=0).numpy()


def retrained(module: nn.Module) -> nn.Module:
    """A module whose every parameter has changed, by an optimizer."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return module


def bundle_of(module: nn.Module, elmo: Embedder) -> Bundle:
    return Bundle(elmo.config, {k: v.detach().clone() for k, v in module.network.state_dict().items()}, layout="test")


def test_trained_weights_loaded_into_a_frozen_module_are_used_wholly_and_the_embedder_stays(elmo):
    before = elmo.layers(TEXT)
    frozen, trained = elmo.module(mix="mean"), retrained(elmo.module(tune=True, mix="mean"))
    vectors(frozen)
    assert frozen.load_state_dict(trained.state_dict()).missing_keys == []
    np.testing.assert_allclose(vectors(frozen), expected(bundle_of(trained, elmo)), atol=1e-5)
    assert np.abs(vectors(frozen) - expected(elmo.bundle)).max() > 1e-2
    assert all(np.array_equal(a, b) for a, b in zip(elmo.layers(TEXT), before, strict=True))
    assert all(
        np.array_equal(a, b) for a, b in zip(Embedder(elmo.bundle, start="zero").layers(TEXT), before, strict=True)
    )


@pytest.mark.parametrize("tune", [False, True])
def test_no_parameter_shares_memory_with_the_embedder_or_another_module(elmo, tune):
    weights = {value.data_ptr() for value in elmo.bundle.weights.values()}
    one, two = ({p.data_ptr() for p in elmo.module(tune=tune).parameters()} for _ in range(2))
    assert not one & weights and not two & weights
    module = elmo.module(tune=tune)
    assert not {p.data_ptr() for p in module.parameters()} & {p.data_ptr() for p in elmo.module().parameters()}


def test_weights_changed_in_place_are_used_by_a_frozen_module(elmo):
    frozen = elmo.module(mix="mean")
    vectors(frozen)
    for parameter in frozen.network.parameters():
        parameter.data.mul_(0.9)
    np.testing.assert_allclose(vectors(frozen), expected(bundle_of(frozen, elmo)), atol=1e-5)


def test_a_frozen_module_trains_once_its_parameters_require_gradients(elmo):
    module = elmo.module().requires_grad_(True)
    module(TEXT)[0].square().sum().backward()
    assert [name for name, p in module.named_parameters() if p.grad is None or not p.grad.any()] == []
    found = vectors(retrained(module))
    assert np.abs(found - expected(elmo.bundle)).max() > 1e-2


def test_a_tuned_module_that_is_frozen_no_longer_builds_a_graph(elmo):
    module = elmo.module(tune=True, mix="mean")
    assert module(TEXT)[0].requires_grad
    module.requires_grad_(False)
    assert not module(TEXT)[0].requires_grad
    np.testing.assert_allclose(vectors(module), expected(elmo.bundle), atol=1e-5)


def test_part_of_the_network_can_be_trained(elmo):
    module = elmo.module()
    module.network.words.requires_grad_(True)
    module(TEXT)[0].square().sum().backward()
    assert {name.split(".")[1] for name, p in module.named_parameters() if p.grad is not None} == {"words", "0"}


@pytest.mark.parametrize("tune", [False, True])
def test_in_double_precision(elmo, tune):
    module = elmo.module(tune=tune, mix="mean").double()
    found, _ = module(TEXT)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(vectors(module), expected(elmo.bundle), atol=1e-7)
    np.testing.assert_allclose(vectors(module.float()), expected(elmo.bundle), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tune", [False, True])
def test_in_half_precision(elmo, tune, dtype):
    module = elmo.module(tune=tune).to(dtype)
    found, _ = module(TEXT)
    assert found.dtype == dtype
    np.testing.assert_allclose(vectors(module), expected(elmo.bundle), atol=0.1)
    if tune:
        found.float().square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


def test_on_another_device(elmo):
    module = elmo.module().to("meta")  # stands for a GPU: it would fail if any tensor stayed behind
    found, mask = module(TEXT)
    assert found.is_meta and mask.is_meta and found.shape == (4, 4, 16)
    assert all(value.is_meta for value in (*module.parameters(), *module.buffers()))


def test_the_start_moves_with_the_module_and_is_no_part_of_its_weights():
    elmo = Embedder(made())  # settled
    module = elmo.module(mix="mean")
    assert not [name for name in module.state_dict() if "start" in name]
    np.testing.assert_allclose(vectors(module.double())[0, :3], elmo.embed(TEXT)[0], atol=1e-5)
    assert {buffer.dtype for buffer in module.buffers()} == {torch.float64}


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), saved_and_loaded],
                         ids=["deepcopy", "pickle", "torch.save"])  # fmt: skip
@pytest.mark.parametrize("tune", [False, True])
def test_a_copy_is_the_same_and_independent(elmo, tune, copied):
    module = elmo.module(tune=tune, mix="mean")
    before = vectors(module)
    twin = copied(module)
    assert np.array_equal(vectors(twin), before)
    assert [p.requires_grad for p in twin.parameters()] == [p.requires_grad for p in module.parameters()]
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(0.5)
    np.testing.assert_allclose(vectors(twin), expected(bundle_of(twin, elmo)), atol=1e-5)
    assert np.array_equal(vectors(module), before)


def test_an_embedder_is_copied_by_deepcopy_and_pickle(elmo):
    before = elmo.layers(TEXT)
    for twin in (copy.deepcopy(elmo), pickle.loads(pickle.dumps(elmo))):
        assert all(np.array_equal(a, b) for a, b in zip(twin.layers(TEXT), before, strict=True))


def test_gradients_of_a_tuned_module_can_be_asked_for_directly_and_twice(elmo):
    module = elmo.module(tune=True)
    loss = module(TEXT)[0].square().sum()
    parameters = list(module.parameters())
    direct = torch.autograd.grad(loss, parameters, retain_graph=True)
    loss.backward()
    torch.testing.assert_close(list(direct), [p.grad for p in parameters])


# Prepared weights


@pytest.mark.parametrize("cell", [None, GRU], ids=["lstm", "gru"])
def test_prepared_weights_are_those_of_the_moment_they_were_made(cell):
    bundle = made(cell=cell)
    network, batch = copy.deepcopy(bundle.network()), bundle.indexer().batch(TEXT)
    prepared = network.prepared()
    values = torch.empty(3, int(batch.lengths.sum()), 16)

    def run():
        with torch.inference_mode():
            state = network.zero_state(len(TEXT))
            bilmo.net.run.run(prepared.stacks, prepared.words(batch.words), batch, state, skip=True, out=values)
        return values.clone()

    before = run()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(0.5)
    assert torch.equal(run(), before)
    network.double().float()
    assert torch.equal(run(), before)


def test_preparing_leaves_a_network_as_it_was_and_it_still_trains():
    bundle = made()
    network, batch = copy.deepcopy(bundle.network()), bundle.indexer().batch(TEXT)
    names = {name: set(vars(module)) for name, module in network.named_modules()}
    network.prepared()
    assert {name: set(vars(module)) for name, module in network.named_modules()} == names
    layers, _ = network(batch, network.zero_state(len(TEXT)))
    layers.padded().values.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize(
    ("moved", "found"), [({"device": "meta"}, "float32 on meta"), ({"dtype": torch.float64}, "float64 on cpu")]
)
def test_only_float32_weights_on_the_cpu_are_prepared(moved, found):
    network = copy.deepcopy(made().network()).to(**moved)
    with pytest.raises(ConfigError, match=rf"only weights in float32 on the CPU can be prepared; found torch.{found}"):
        network.prepared()


def test_prepared_weights_are_not_copied():
    prepared = made().network().prepared()
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copy or save the network, and prepare the copy"):
            copied(prepared)


def test_a_table_of_words_is_prepared_without_a_copy():
    torch.manual_seed(0)
    words = WordsConfig(table=TableConfig(rows=5, width=4, given=True))
    config = bilmo.BiLMConfig(words=words, cell=CellConfig(cells=24), width=8)
    network = bilmo.BiLM(config)
    assert network.prepared().words._table.weight.data_ptr() == network.words.table.weight.data_ptr()


def test_a_network_is_a_copy_whose_changes_reach_neither_the_model_nor_its_modules():
    elmo = Embedder(made(), start="zero")
    before = vectors(elmo.module())
    with torch.no_grad():
        for parameter in elmo.bundle.network().parameters():
            parameter.zero_()
    assert np.array_equal(vectors(elmo.module()), before)


def test_the_start_of_a_module_moves_with_it_and_is_not_saved():
    elmo = Embedder(made(), start="settled")
    module = elmo.module().double()
    assert {name for name, _ in module.start.named_buffers()} >= {"forward_0_h", "backward_1_c"}
    assert all(part.dtype == torch.float64 for part in module.start.buffers())
    assert not any(name.startswith("start") for name in module.state_dict())
    for name, part in module.start(3).named().items():
        assert torch.equal(part, elmo.start_state.named()[name].double().expand(3, -1))

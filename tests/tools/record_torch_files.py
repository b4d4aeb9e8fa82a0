#!/usr/bin/env python3
"""Record what torch.save writes: tests/data/torch_*.bin, in the container since torch 1.6 and in the one before.

    tests/tools/record_torch_files.py tests/data

Needs torch and safetensors; the tests need neither, they read the files. torch_types.safetensors holds the tensors of
torch_types.bin and torch_types_old.bin: every type that a safetensors file can have, ties, slices, a scalar, none.
torch_TYPE[_old].bin are small models' state_dicts, some of them as DataParallel names them.
"""
import collections
import sys

import torch
from safetensors.torch import save_file

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/models")
from record_models import SMALL, new_model  # noqa: E402

SIZES = dict(d_model=4, num_heads=2, dim_feedforward=4, encoder_layers=1, decoder_layers=1)
TIED = dict(src_vocab=13, tie="all", output_bias=0)
MODELS = [  # name, type, prefix, in the older container, what differs
    ("f32", torch.float32, "", False, TIED),
    ("f32_old", torch.float32, "module.", True, TIED),
    ("f16", torch.float16, "module.", False, {}),
    ("f16_old", torch.float16, "", True, {}),
    ("bf16", torch.bfloat16, "", False, TIED),
    ("f64", torch.float64, "", False, {}),
]


def save(value, path, old):
    torch.save(value, path, _use_new_zipfile_serialization=not old)


def empties():
    """Tensors without elements that begin behind their storage, as slices do."""
    return {"a": torch.zeros(3, 0, 2)[1:], "b": torch.arange(4.0), "c": torch.ones(5)[5:]}


def types():
    table = torch.randn(6, 5)
    state = collections.OrderedDict(table=table, tied=table, rows=table[2:4], one=table[1:2].t(), row=table[3])
    state["parameter"] = torch.nn.Parameter(torch.randn(2, 2))
    state["scalar"], state["empty"] = torch.tensor(-2.5), torch.zeros(3, 0)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        state[str(dtype)[6:]] = torch.randn(2, 3, dtype=torch.float64).to(dtype)
    state["f16"] = torch.tensor([0.0, -0.0, 1.0, 65504.0, 2.0**-24, float("inf")], dtype=torch.float16)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        state[str(dtype)[6:]] = torch.tensor([0, 1, 0, 100]).to(dtype)
    state["complex64"], state["größe"] = torch.tensor([1 + 2j]), torch.ones(1)
    state._metadata = collections.OrderedDict([("", {"version": 2})])
    return state


def main(folder):
    torch.manual_seed(5)
    state = types()
    save(state, f"{folder}/torch_types.bin", False)
    save(state, f"{folder}/torch_types_old.bin", True)
    save(empties(), f"{folder}/torch_empty.bin", False)
    save(empties(), f"{folder}/torch_empty_old.bin", True)
    save_file({k: v.detach().clone().contiguous() for k, v in state.items()}, f"{folder}/torch_types.safetensors")
    for name, dtype, prefix, old, changes in MODELS:
        model = new_model({**SMALL, **SIZES, **changes}).to(dtype)
        save(collections.OrderedDict((prefix + k, v) for k, v in model.state_dict().items()),
             f"{folder}/torch_{name}.bin", old)


if __name__ == "__main__":
    main(sys.argv[1])

"""Common parts of converters of image classifiers: the command line, a trainer's state dict,
and the directory with the pipeline that the original repositories evaluate with."""

import argparse
import pathlib

import model_directory
import restricted_unpickler
import torch_file
from restricted_unpickler import RefusedError

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BICUBIC = 3


def parser(description):
    """Arguments of every converter of image classifiers: CHECKPOINT DIR, and options."""
    made = argparse.ArgumentParser(description=description.split("\n")[0])
    made.add_argument("checkpoint", type=pathlib.Path)
    made.add_argument("directory", type=pathlib.Path)
    made.add_argument("--image-size", type=int, default=224)
    made.add_argument("--crop-fraction", type=float, default=0.875, help="INPUT.CROP_PCT of ViL")
    made.add_argument("--labels", type=pathlib.Path, help="a file with one class name a line")
    return made


def open_net(path):
    """The file and its {name: Tensor}: the entry "net" of a training checkpoint ("model",
    "state_dict"), else the whole; "module." stripped if all names have it."""

    def check(saved):
        for key in ("net", "model", "state_dict"):
            if isinstance(saved, dict) and isinstance(saved.get(key), dict):
                return restricted_unpickler.entry(saved, key)
        return restricted_unpickler.check_state_dict(saved)

    file = torch_file.open_file(path, check, foreign=True)
    prefix = "module."
    if file.tensors and all(name.startswith(prefix) for name in file.tensors):
        file.tensors = {name.removeprefix(prefix): t for name, t in file.tensors.items()}
    return file


def write(directory, file, tensors, config, ties_allowed, pipeline):
    """model.safetensors of `tensors`, config.json and preprocessor_config.json. Tensors that share
    memory are written once where ties_allowed(name, kept name). Returns a line for the user."""
    kept = {name: (file, tensor) for name, tensor in tensors.items()}
    first = {}
    for name in sorted(tensors):
        other = first.setdefault(tensors[name], name)
        if other == name or tensors[name].elements == 0:
            continue
        if not ties_allowed(name, other):
            raise RefusedError(f"{name} and {other} share memory")
        del kept[name]
    size = model_directory.write(directory, kept, {}, config)
    model_directory.write_json(directory / "preprocessor_config.json", pipeline)
    shared = len(tensors) - len(kept)
    return (f"{directory}: {len(kept)} tensors, {size} bytes"
            + (f", {shared} of shared memory left out" if shared else ""))


def labels(path, classes):
    """id2label of a file with one name a line; empty without a file."""
    if path is None:
        return {}
    names = path.read_text("utf-8").splitlines()
    if len(names) != classes:
        raise RefusedError(f"{path}: {len(names)} names for {classes} classes")
    return {"id2label": {str(i): name for i, name in enumerate(names)}}


def pipeline(image_size, crop_fraction):
    """The evaluation transform of the original repositories: shorter side to
    floor(image_size / crop_fraction), centre crop."""
    return {
        "image_processor_type": "ViLImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": int(image_size / crop_fraction)},
        "resample": _BICUBIC,
        "do_center_crop": True,
        "crop_size": {"height": image_size, "width": image_size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _MEAN,
        "image_std": _STD,
    }

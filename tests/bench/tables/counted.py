"""What a server says of configurations: parameters, and multiply-adds of an item. Their weights are zeros."""

import dataclasses
import pathlib
import shutil
import urllib.error

from tables import configurations, served

MODELS, BYTES = 25, 2 << 30  # The most that one server holds; weights are a second time in its own layout.


@dataclasses.dataclass
class Count:
    parameters: float = 0
    multiply_adds: float | None = None
    problem: str = ""  # Why it does not load, or has no cost at its row's size.


def asked(server, models):
    """models: name to row."""
    parameters = {model["name"]: model["parameters"] for model in server.get("/v1/models")["data"]}
    found = {}
    for name, row in models.items():
        count = Count(parameters[name])
        try:
            if row.size:
                count.multiply_adds = row.documents * server.estimate(name, **row.size)["multiply_adds"]
        except urllib.error.HTTPError as error:
            count.problem = error.read().decode()
        found[row.cell] = count
    return found


def serve(models, folders):
    """Counts of these models; one that fails stops the server, so halves of them are tried again."""
    try:
        with served.serving({name: folders[name] for name in models}) as server:
            return asked(server, models)
    except RuntimeError as error:
        if len(models) == 1:
            return {row.cell: Count(problem=str(error).strip().splitlines()[-1]) for row in models.values()}
    names = list(models)
    halves = names[:len(names) // 2], names[len(names) // 2:]
    return {cell: count for half in halves
            for cell, count in serve({name: models[name] for name in half}, folders).items()}


def count(rows, scratch):
    """Config cell to Count, of each different configuration once. Checkpoints are gone when it returns."""
    different = {row.cell: row for row in rows if row.served}
    found, models, folders, held = {}, {}, {}, 0
    for number, row in enumerate(different.values()):
        name = f"m{number}"
        folder = pathlib.Path(scratch) / "s1" / name
        try:
            served.make(folder, row.config, configurations.files_beside(row.config))
        except RuntimeError as error:
            found[row.cell] = Count(problem=str(error))
            shutil.rmtree(folder)
            continue
        models[name], folders[name] = row, folder
        held += (folder / "model.safetensors").stat().st_size
        if len(models) < MODELS and held < BYTES and number + 1 < len(different):
            continue
        found |= serve(models, folders)
        for made in folders.values():
            shutil.rmtree(made)
        models, folders, held = {}, {}, 0
    return found

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
            if row.has_cost:
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


def batches(folders):
    """Of names, as many as one server holds."""
    batch: list[str] = []
    held = 0
    for name, folder in folders.items():
        size = (folder / "model.safetensors").stat().st_size
        if batch and held + size > BYTES:
            yield batch
            batch, held = [], 0
        batch.append(name)
        held += size
    if batch:
        yield batch


def count(rows, scratch):
    """Config cell to Count, of each different configuration once. Checkpoints are gone when it returns."""
    different = list({row.cell: row for row in rows if row.served}.values())
    found: dict[str, Count] = {}
    for begin in range(0, len(different), MODELS):
        models = {f"m{begin + i}": row for i, row in enumerate(different[begin:begin + MODELS])}
        folders = {name: pathlib.Path(scratch) / "s1" / name for name in models}
        for name, row in models.items():
            served.prepare(folders[name], row.config, configurations.files_beside(row.config))
        problems = served.fill(folders.values())
        found |= {row.cell: Count(problem=problems[folders[name]]) for name, row in models.items()
                  if folders[name] in problems}
        made = {name: folder for name, folder in folders.items() if folder not in problems}
        for batch in batches(made):
            found |= serve({name: models[name] for name in batch}, folders)
        for folder in folders.values():
            shutil.rmtree(folder)
    return found

"""The Open Inference Protocol's bodies as mlserver and KServe describe them.

Runs in an environment of its own, with pydantic alone: reads one JSON array of jobs, writes one of results.
  {"check": "mlserver.InferenceResponse", "text": "…"}      what is wrong with the body, "" if nothing
  {"write": "kserve.InferenceRequest", "members": {…}}      the body as the package serialises it

  open_inference_models.py MLSERVER KSERVE    folders of the unpacked wheels
"""

import importlib.util
import json
import pathlib
import sys

import pydantic


def load(name, path):
    """A module from its file: the packages around it import servers."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(mlserver, kserve):
    modules = {"mlserver": load("mlserver_types", pathlib.Path(mlserver) / "mlserver/types/__init__.py"),
               "kserve": load("kserve_types", pathlib.Path(kserve) / "kserve/protocol/rest/v2_datamodels.py")}

    def run(job):
        package, name = job.get("check", job.get("write")).split(".")
        model = getattr(modules[package], name)
        if "write" in job:
            return model(**job["members"]).model_dump_json()
        try:
            model.model_validate_json(job["text"], strict=True)
        except pydantic.ValidationError as error:
            return str(error)
        return ""

    json.dump([run(job) for job in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Generates longview.v1 from the protocol files while the package is built."""

import pathlib

import setuptools
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE / "proto"


def generate(target: pathlib.Path) -> None:
    """Writes target/longview/v1/*_pb2.py, their type hints and the gRPC stubs."""
    from grpc_tools import protoc  # Only while building: a build requirement.
    import grpc_tools

    files = sorted(PROTO.glob("longview/v1/*.proto"))
    if not files:
        raise SystemExit(f"no protocol files under {PROTO}")
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={target}",
                 f"--pyi_out={target}", f"--grpc_python_out={target}", *map(str, files)]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    (target / "longview" / "v1" / "__init__.py").write_text(
        '"""Messages and stubs of the package longview.v1, generated."""\n')


class BuildWithStubs(build_py):
    def run(self) -> None:
        super().run()
        generate(HERE if self.editable_mode else pathlib.Path(self.build_lib))


setuptools.setup(cmdclass={"build_py": BuildWithStubs})

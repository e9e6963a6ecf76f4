"""Scripts that belong to no package, as modules."""

import importlib.util
import sys


def script(path):
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""The part of the build that `pyproject.toml` has no words for: the kernels.

``python setup.py build_ext --inplace`` compiles those that changed, beside their sources.
"""

from setuptools import setup

from tools.package.extension import Kernels, extensions, place

setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Kernels},
    # In the tree only what a person asked for.
    options={"build": {"build_base": place()}, "egg_info": {"egg_base": "src"}},
)

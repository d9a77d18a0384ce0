"""Policies: frozen recipes over memories that are a few arrays.

Each is loaded when it is asked for: `__init__.pyi` says from where.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

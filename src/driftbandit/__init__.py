"""driftbandit: contextual bandits that keep up with a changing world, in constant time a round.

Names are loaded when they are asked for: what there is, and where, is in `__init__.pyi`.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

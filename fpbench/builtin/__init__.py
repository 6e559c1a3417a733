"""The components that come with fpbench, and what scripts may use of the papers' methods.

A component that belongs to no paper of ours is a file in the folder of its kind. A paper has a
folder (`ferry`, `pate`, `pafer`, `private_tree`) with its components and the science that only it
uses. Components use what a third party may: `fpbench`, what its rooms export, and helpers beside
them; the science of a paper, and the fits in `batched`, also check arguments as the rooms do, by
`fpbench.base`.

Plugins may import what `__init__.pyi` lists: the private tree outside learners.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

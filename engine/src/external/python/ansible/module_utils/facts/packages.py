"""Package managers: what the classes of collections are derived from."""

from abc import ABCMeta, abstractmethod

from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.common._utils import get_all_subclasses
from ansible.module_utils.common.process import get_bin_path


def get_all_pkg_managers():
    """All that are known, by name in lower case."""
    return {cls.__name__.lower(): cls for cls in get_all_subclasses(PkgMgr) if cls not in (CLIMgr, LibMgr)}


class PkgMgr(metaclass=ABCMeta):
    """Something that lists packages."""

    @abstractmethod
    def is_available(self, handle_exceptions=True):
        """Whether it can be asked here."""

    @abstractmethod
    def list_installed(self):
        """What is installed, one package an item."""

    @abstractmethod
    def get_package_details(self, package):
        """An item as a mapping."""

    def get_packages(self):
        installed = {}
        for package in self.list_installed():
            details = self.get_package_details(package)
            details.setdefault('source', self.__class__.__name__.lower())
            installed.setdefault(details['name'], []).append(details)
        return installed


class LibMgr(PkgMgr):
    """One that is a library of Python."""

    LIB = None

    def __init__(self):
        self._lib = None

    def is_available(self, handle_exceptions=True):
        try:
            self._lib = __import__(self.LIB)
            return True
        except ImportError:
            if not handle_exceptions:
                raise Exception(missing_required_lib(self.LIB))
            return False


class CLIMgr(PkgMgr):
    """One that is a program."""

    CLI = None

    def __init__(self):
        self._cli = None

    def is_available(self, handle_exceptions=True):
        try:
            self._cli = get_bin_path(self.CLI)
            return True
        except ValueError:
            if not handle_exceptions:
                raise
            return False

"""The release of ansible-core whose interface this is."""

__version__ = '2.21.5'
__author__ = 'fleetctl'
__codename__ = 'fleetctl'

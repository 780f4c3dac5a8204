"""A few facts, for modules that ask for them."""

from ansible.module_utils.facts.compat import ansible_facts, get_all_facts

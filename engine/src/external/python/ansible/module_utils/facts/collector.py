"""What collectors of facts are derived from."""


class BaseFactCollector(object):
    """One that finds some facts."""

    _fact_ids = set()
    _platform = 'Generic'
    name = None
    required_facts = set()

    def __init__(self, collectors=None, namespace=None):
        self.collectors = collectors or []
        self.namespace = namespace
        self.fact_ids = {self.name} | set(self._fact_ids)

    @classmethod
    def platform_match(cls, platform_info):
        return cls if platform_info.get('system') == cls._platform else None

    def collect(self, module=None, collected_facts=None):
        return {}

    def collect_with_namespace(self, module=None, collected_facts=None):
        facts = self.collect(module, collected_facts)
        return {self.namespace.transform(name): value for name, value in facts.items()} if self.namespace else facts

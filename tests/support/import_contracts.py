"""A contract of import-linter: which modules may reach a heavy package, in however many steps.

import-linter's own `forbidden` needs the list of those that may not, which grows with every pure module, and
forgets the one that nobody added.
"""

import grimp
from importlinter import Contract, ContractCheck, fields, output


class OnlyThese(Contract):
    """Of a package, only the allowed modules import the forbidden ones, directly or through others.

    Configuration options:
        source: the package.
        forbidden_modules: what only some may reach.
        allowed_modules: those; a package stands for all that is in it. Each has to reach one of them still.
    """

    type_name = "only_these"

    source = fields.StringField()
    forbidden_modules = fields.ListField(subfield=fields.StringField())
    allowed_modules = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Finds modules that reach what they may not, and entries of the list that no module needs."""
        reaching = set.union(*map(graph.find_downstream_modules, self.forbidden_modules))
        allowed, unneeded = set(), []
        for expression in self.allowed_modules:
            named = graph.find_matching_modules(expression)
            found = named.union(*map(graph.find_descendants, named))
            allowed |= found
            if not found & reaching:
                unneeded.append(expression)
        within = {self.source, *graph.find_descendants(self.source)}
        chains = {
            module: min(
                filter(None, (graph.find_shortest_chain(module, each) for each in self.forbidden_modules)),
                key=len,
            )
            for module in sorted(within & reaching - allowed)
        }
        return ContractCheck(
            kept=not chains and not unneeded, metadata={"chains": chains, "unneeded": unneeded}
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints by which imports each module reaches what it may not."""
        for module, chain in check.metadata["chains"].items():
            output.print_error(f"{module} may not: {' -> '.join(chain)}", bold=False)
        for name in check.metadata["unneeded"]:
            output.print_error(f"{name} is in allowed_modules, and need not be", bold=False)

"""From a case to what the cost model evaluates: everything but the software's constants."""

from dataclasses import dataclass, replace

from costmodel.calibration.case import Case
from costmodel.calibration.clusters import cluster_of
from costmodel.calibration.completion import completed
from costmodel.calibration.convention import Convention, convention
from costmodel.calibration.layouts import job_of, layout_of
from costmodel.calibration.measured import measured_step_s, model_flop_per_token
from costmodel.calibration.mixed import (
    MIXED_ASSUMPTION,
    is_mixed,
    mixed_cluster,
    mixed_layout,
    plain_case,
)
from costmodel.calibration.models import Reading, model_of
from costmodel.calibration.open_settings import OFFLOADED, decided_by_memory
from costmodel.calibration.stated_values import check_stated
from costmodel.efficiency import Efficiency
from costmodel.evaluation import Evaluation
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.software.read import software_profile
from costmodel.step import evaluate

TUNED_MFU = 0.25
"""From this measured utilisation of the 16-bit peak a run counts as tuned."""

ADAPTERS = {"backward_products": 1.0, "trained_share": 0.01}
"""LoRA: weights are frozen, so that they have no gradients, and adapters of a hundredth of the
parameters are summed and updated (ranks of 8 to 32; Hu et al., arXiv 2106.09685)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A case ready to be evaluated under any constants.

    layouts: with their share of the prediction, more than one where part of the layers recompute.
    step_s: measured. mfu: measured model FLOPs over the 16-bit peak. assumptions: what was filled
    in for the case, one sentence each.
    """

    case: Case
    how: Convention
    problem: Problem
    layouts: tuple[tuple[Layout, float], ...]
    step_s: float | None
    mfu: float | None
    assumptions: tuple[str, ...]

    @property
    def tuned(self) -> bool:
        """Whether the run counts as tuned."""
        return self.mfu is not None and self.mfu >= TUNED_MFU

    def problem_under(self, efficiency: Efficiency) -> Problem:
        """The problem with these constants, as far as the case does not fix them."""
        own = replace(
            efficiency,
            logit_bytes=self.how.logit_bytes,
            fused_gradients=self.how.fused_gradients,
            vendor_attention=self.how.transformer_engine,
        )
        return replace(self.problem, efficiency=replace(own, **ADAPTERS) if self.adapters else own)

    @property
    def offloads(self) -> bool:
        """Whether activations that do not fit are taken to go to the host's memory."""
        return OFFLOADED in self.assumptions

    @property
    def adapters(self) -> bool:
        """Whether only adapters are trained (LoRA)."""
        return trains_adapters(self.case)

    def evaluations(self, efficiency: Efficiency) -> list[tuple[Evaluation, float]]:
        """The prediction of each layout with its share."""
        problem = self.problem_under(efficiency)
        return [(evaluate(problem, layout), share) for layout, share in self.layouts]


def trains_adapters(case: Case) -> bool:
    """Whether the case says that it trains LoRA adapters."""
    return case.parallel.word("method").lower().startswith("lora")


def prepare(case: Case) -> Prepared:
    """Reads one case. Raises UnscorableError, or InputError for unpublished numbers."""
    check_stated(case)
    how, mixed = convention(case), is_mixed(case)
    case = plain_case(case) if mixed else case
    filled = completed(case, how)
    reading = Reading(case=filled.case, convention=how, assumptions=filled.assumptions)
    job = job_of(reading)
    model = model_of(reading)
    cluster = mixed_cluster(case) if mixed else cluster_of(reading)
    whole = mixed_layout(case, model.num_layers) if mixed else None
    if mixed:
        reading.assume(MIXED_ASSUMPTION)
    layout = whole or layout_of(reading, job, model.num_layers)
    problem = Problem(
        model=model,
        cluster=cluster,
        job=job,
        efficiency=software_profile(case.stack).efficiency,
    )
    stated = case.parallel.size("gbs") is not None
    step_s = measured_step_s(filled.case, model, cluster, how, batch_stated=stated)
    flop = model_flop_per_token(model, job.sequence_length, adapters=trains_adapters(case))
    tokens = job.global_batch_size * job.sequence_length
    peak = cluster.pools[0].chip.peak_flop_per_s.get("bf16") or cluster.pools[0].chip.peak("fp16")
    chips = case.hardware.need("n_chips")
    prepared = Prepared(
        case=filled.case,
        how=how,
        problem=problem,
        layouts=((layout, 1.0),),
        step_s=step_s,
        mfu=flop * tokens / (step_s * peak * chips) if step_s else None,
        assumptions=(),
    )
    problem = prepared.problem_under(problem.efficiency)
    layouts = decided_by_memory(problem, reading, layout)
    return replace(prepared, layouts=layouts, assumptions=tuple(reading.assumptions))

"""Kinds of parallelism together, as plans for mixed clusters combine them."""

from tests.runner.tiny import GPT, LLAMA, MOE, SHARED_MOE, check, model, option, pipeline


def test_unlike_pipelines_of_unlike_stages() -> None:
    check(
        model([LLAMA] * 4, tied=True),
        pipeline(
            (2, option(tp=2, micro_batch_size=2, zero=1, recompute="selective")),
            (2, option(replicas=2, zero=1)),
            microbatches=3,
        ),
        pipeline((1, option(zero=1)), (3, option(zero=1, recompute="full")), microbatches=2),
    )


def test_unlike_pipelines_with_sharded_gradients() -> None:
    check(
        model([LLAMA] * 4, tied=True),
        pipeline(
            (1, option(tp=2, zero=2)), (1, option(zero=2)), (2, option(zero=2)), microbatches=5
        ),
        pipeline((3, option(zero=2)), (1, option(zero=2)), microbatches=2),
    )


def test_dense_and_expert_layers_with_unlike_grids() -> None:
    check(
        model([MOE, LLAMA, MOE]),
        pipeline(
            (1, option(ep=2, tp=2, zero=1, recompute="full", micro_batch_size=2)),
            (2, option(ep=2, replicas=2, zero=1, recompute="selective")),
        ),
        pipeline((2, option(zero=1)), (1, option(zero=1)), microbatches=3),
    )


def test_latent_attention_with_context_and_expert_parallelism() -> None:
    check(
        model([GPT, SHARED_MOE]),
        pipeline((1, option(cp=2, tp=2, recompute="full")), (1, option(cp=2, ep=2, zero=0))),
    )


def test_sharded_weights_on_unlike_stages() -> None:
    check(
        model([LLAMA, MOE]),
        pipeline(
            (1, option(tp=2, zero=3, micro_batch_size=2, recompute="full")),
            (1, option(replicas=2, ep=2, zero=3)),
            microbatches=3,
            count=2,
        ),
    )

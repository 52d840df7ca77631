"""The bundled clusters with unlike pools, their jobs and the models that are tried on them."""

from costmodel.job import Job

MODELS = ("llama3-70b", "llama3.1-405b", "mixtral-8x22b", "deepseek-v3")
JOBS = {
    "hybrid-64": Job(global_batch_size=1024, sequence_length=4096),
    "a100-v100-256": Job(global_batch_size=1024, sequence_length=4096, precision="fp16"),
    "ascend910b-c500-1024": Job(global_batch_size=2048, sequence_length=4096),
    "h100-a800-h20-1024": Job(global_batch_size=2048, sequence_length=4096),
    "mixed-10240": Job(global_batch_size=4096, sequence_length=8192),
    "mixed-102400": Job(global_batch_size=40960, sequence_length=8192),
}

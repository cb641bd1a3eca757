"""PyTorch models: `torch.compile(model, backend="smartmem")`, and exported programs for `smartmem_rules.optimize`.

Needs the extra `torch`. What runs where is said in docs/torch.md.
"""

"""What commands show of models and plans: texts of stages, levels on a model of a device, reports."""

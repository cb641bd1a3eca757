"""Language models token by token: plans that share weights and a cache of keys and values on the device."""

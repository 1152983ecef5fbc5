"""The problems that kteardown knows, and what each costs on the kernels that were measured."""

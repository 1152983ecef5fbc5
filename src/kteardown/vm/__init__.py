"""How a kernel is booted in a virtual machine: QEMU, the agent, the initramfs, the console."""

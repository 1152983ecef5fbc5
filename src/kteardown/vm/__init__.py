"""Boot a kernel in a virtual machine: QEMU, the agent, the initramfs, the console."""

"""The driver's errors in words, and whose fault they are."""

#: Part of the driver's or the runtime's name for an error -> what a learner reads.
WORDS = {
    "ILLEGAL_ADDRESS": "the kernel reads or writes where there is no memory",
    "illegal memory access": "the kernel reads or writes where there is no memory",
    "MISALIGNED": "the kernel reads or writes at an address that is no multiple of the access's size",
    "misaligned": "the kernel reads or writes at an address that is no multiple of the access's size",
    "OUT_OF_RESOURCES": "the launch asks for more registers or shared memory than there are",
    "too many resources": "the launch asks for more registers or shared memory than there are",
    "ILLEGAL_INSTRUCTION": "the kernel runs into an instruction that the device does not know, or stops itself (trap)",
    "illegal instruction": "the kernel runs into an instruction that the device does not know, or stops itself (trap)",
    "unspecified launch failure": "the kernel stops itself (trap), or breaks off",
    "LAUNCH_FAILED": "the kernel stops itself (trap), or breaks off",
    "HARDWARE_STACK": "the kernel's calls are nested too deep",
    "ASSERT": "an assertion in the kernel fails",
    "device-side assert": "an assertion in the kernel fails",
    "INVALID_VALUE": "the driver refuses the launch: its numbers are not possible",
    "invalid argument": "the driver refuses the launch: its numbers are not possible",
    "INVALID_CONFIGURATION": "the driver refuses the launch: its numbers are not possible",
    "OUT_OF_MEMORY": "the kernel asks for more memory than there is: look at its local arrays",
    "out of memory": "the kernel asks for more memory than there is: look at its local arrays",
    "OutOfMemory": "the kernel asks for more memory than there is: look at its local arrays",
    "TIMEOUT": "the kernel does not end",
}
#: Errors of the device itself, which cost no learner anything.
DEVICES = ("ECC", "NVLINK", "DevicesUnavailable", "busy or unavailable", "NO_DEVICE", "DEVICE_NOT_LICENSED", "SYSTEM_")


def in_words(fault: str) -> str:
    """Return what a learner reads of a fault; the driver's own words where there are no better ones."""
    for part, words in WORDS.items():
        if part in fault:
            return words
    return " — ".join(" ".join(line.split()) for line in fault.split("\n\n")[0].splitlines())[:400]


def is_the_devices(fault: str) -> bool:
    """Tell whether an error is the device's own."""
    return any(part in fault for part in DEVICES)

"""The driver's errors in words, and whose fault they are."""

import re
import signal

_NO_MEMORY = "the kernel reads or writes where there is no memory"
_STOPS = "the kernel stops itself (trap), or breaks off"
_NOT_POSSIBLE = "the driver refuses the launch: its numbers are not possible"
_ONE_PART = "the kernel jumps, or reads or writes, where its instruction does not reach"

#: All that a kernel or its launch can bring about, by the driver's and the runtime's name -> what a learner reads.
#: Whatever has another name, known or not, is the device's or the machine's, and costs no learner anything.
KERNELS = {
    ("CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress"): _NO_MEMORY,
    ("CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress"): (
        "the kernel reads or writes at an address that is no multiple of the access's size"
    ),
    ("CUDA_ERROR_INVALID_ADDRESS_SPACE", "cudaErrorInvalidAddressSpace"): _ONE_PART,
    ("CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc"): _ONE_PART,
    ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction"): (
        "the kernel runs into an instruction that the device does not know, or stops itself (trap)"
    ),
    ("CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure"): _STOPS,
    ("CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError"): "the kernel's calls are nested too deep",
    ("CUDA_ERROR_ASSERT", "cudaErrorAssert"): "an assertion in the kernel fails",
    ("CUDA_ERROR_TENSOR_MEMORY_LEAK", "cudaErrorTensorMemoryLeak"): "the kernel ends without freeing tensor memory",
    ("CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout"): "the kernel does not end",
    ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources"): (
        "the launch asks for more registers or shared memory than there are"
    ),
    ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cudaErrorCooperativeLaunchTooLarge"): (
        "the launch asks for more blocks at once than the device has room for"
    ),
    ("CUDA_ERROR_INVALID_CLUSTER_SIZE", "cudaErrorInvalidClusterSize"): (
        "the launch asks for clusters that the device does not make"
    ),
    ("CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue"): _NOT_POSSIBLE,
    ("cudaErrorInvalidConfiguration",): _NOT_POSSIBLE,
    ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"): (
        "the kernel asks for more memory than there is: look at its local arrays"
    ),
    ("CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound"): "the kernel is not in the code that its source compiles to",
}
_WORDS = {name: words for names, words in KERNELS.items() for name in names}
_NAME = re.compile(r"\b(?:CUDA_ERROR_\w+|cudaError\w+)")
#: Signals that end a process by what it does itself: a kernel's printf has its format read on the host. Any other end
#: comes from outside, from the machine or a person.
CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE})


def in_words(fault: str) -> str:
    """Return what a learner reads of a fault; the fault's own first lines where there are no better words."""
    for name in _NAME.findall(fault):
        if name in _WORDS:
            return _WORDS[name]
    return " — ".join(" ".join(line.split()) for line in fault.split("\n\n")[0].splitlines())[:400]


def is_a_kernels(fault: str) -> bool:
    """Tell whether an error of the driver is one that a kernel or its launch can bring about."""
    names = _NAME.findall(fault)
    return bool(names) and all(name in _WORDS for name in names)

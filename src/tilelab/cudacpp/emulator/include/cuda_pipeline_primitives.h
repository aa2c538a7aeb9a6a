#include "tilelab_cuda.h"

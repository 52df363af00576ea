// The number of a token in a model's vocabulary: part of the public interface.
#pragma once

#include "trtmc/values.h"

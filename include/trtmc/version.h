/* The version of trtmc, and what of the library is visible to its users. For C and C++. The build
 * takes its version from here. docs/versioning.md says what a change of each number means. */
#pragma once

#define TRTMC_VERSION_STRING "0.1.0"
#define TRTMC_VERSION_NUMBER 100 /* major * 10000 + minor * 100 + patch */

#define TRTMC_API __attribute__((visibility("default")))

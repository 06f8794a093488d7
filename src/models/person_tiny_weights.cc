// The trained weights of person-tiny, put into the program by the assembler: a network that works wherever the program
// is.
#include "models/zoo.h"

__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".hidden strobe_person_tiny_begin\n"
    ".hidden strobe_person_tiny_end\n"
    ".globl strobe_person_tiny_begin\n"
    ".globl strobe_person_tiny_end\n"
    "strobe_person_tiny_begin:\n"
    ".incbin \"" STROBE_PERSON_TINY_WEIGHTS
    "\"\n"
    "strobe_person_tiny_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
__attribute__((visibility("hidden"))) extern const char strobe_person_tiny_begin[];
__attribute__((visibility("hidden"))) extern const char strobe_person_tiny_end[];
}

namespace strobe::models {

std::string_view person_tiny_weights() {
  return {strobe_person_tiny_begin, static_cast<size_t>(strobe_person_tiny_end - strobe_person_tiny_begin)};
}

}  // namespace strobe::models

#include "strobe/engines/engine.h"

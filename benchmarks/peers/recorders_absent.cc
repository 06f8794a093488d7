// Peers that were not found when this was configured.
#include "peers/recorders.h"

namespace strobe::bench {

#ifdef STROBE_NO_PEER_nvtx
void register_nvtx() {
  register_skipped("nvtx_push_pop", STROBE_NO_PEER_nvtx);
}
#endif
#ifdef STROBE_NO_PEER_lttng
void register_lttng() {
  register_skipped("lttng_ust", STROBE_NO_PEER_lttng);
}
#endif
#ifdef STROBE_NO_PEER_torch
void register_torch() {
  register_skipped("torch_record_function", STROBE_NO_PEER_torch);
}
#endif

}  // namespace strobe::bench

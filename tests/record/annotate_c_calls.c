/* The C header in plain C: compiles alone, and every call of it once. */
#include "strobe/record/annotate_c.h"

int record_from_c(const char* folder, char* message, size_t message_bytes, uint64_t* dropped);

int record_from_c(const char* folder, char* message, size_t message_bytes, uint64_t* dropped) {
  const strobe_name work = strobe_intern("work");
  const strobe_name key = strobe_intern("key");
  uint64_t id;
  int failed = strobe_start(folder, message, message_bytes);
  if (failed != 0) return failed;
  if (!strobe_recording() || strobe_annotate_abi() != STROBE_ANNOTATE_ABI) return -1;
  strobe_push(work, 4);
  strobe_arg_int(key, -1);
  strobe_arg_double(key, 0.5);
  strobe_arg_text(key, "text");
  strobe_push_text("made at run time", STROBE_NO_FRAME);
  strobe_pop();
  strobe_pop();
  id = strobe_new_id();
  strobe_async_begin(work, id, 1);
  strobe_async_end(work, id);
  strobe_flow_out(work, id);
  strobe_flow_in(work, id);
  strobe_mark(work, 2);
  strobe_counter(key, 1.5);
  strobe_name_thread("c");
  strobe_fact("language", "C");
  strobe_fact("nothing", NULL);
  return strobe_stop(dropped, message, message_bytes);
}

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
  {
    const strobe_category_t category = strobe_category("kind", "library");
    strobe_arg args[3];
    args[0].key = key;
    args[0].type = STROBE_ARG_INT;
    args[0].value.integer = 7;
    args[1].key = key;
    args[1].type = STROBE_ARG_DOUBLE;
    args[1].value.real = 0.5;
    args[2].key = key;
    args[2].type = STROBE_ARG_TEXT;
    args[2].value.text = NULL;
    strobe_push_in(category, work, 1);
    strobe_arg_batch(2, 3);
    strobe_push_text_in(category, "made at run time", 1);
    strobe_pop();
    strobe_pop();
    strobe_async_begin_in(category, work, id, 1, args, 1);
    strobe_async_end_args(work, id, args, 1);
    strobe_async_begin_text_in(0, "text", id, 1, NULL, 0);
    strobe_async_end_text("text", id, NULL, 0);
    strobe_async_begin(work, id, 1);
    strobe_async_end_id(id, NULL, 0);
    strobe_mark_in(category, work, 1, args, 3);
    strobe_mark_text_in(strobe_category("kind", NULL), "text", 1, args, 0);
    strobe_counter_int(key, 4);
    strobe_thread_counter(key, 4.5);
    strobe_thread_counter_int(key, 5);
  }
  strobe_name_thread("c");
  strobe_fact("language", "C");
  strobe_fact("nothing", NULL);
  return strobe_stop(dropped, message, message_bytes);
}

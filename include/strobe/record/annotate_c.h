/* The annotations of strobe/record/annotate.h for C and for anything that can call C. This ABI is stable: functions
 * are added, never changed. Every call is safe from any thread, at any time, recording or not. Texts are UTF-8, ended
 * by 0, and copied. A frame of -1 means no frame. */
#ifndef STROBE_RECORD_ANNOTATE_C_H_
#define STROBE_RECORD_ANNOTATE_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STROBE_ANNOTATE_ABI 1
#define STROBE_NO_FRAME ((int64_t)-1)

/* An interned name, valid for the life of the process. Make each once, then use it as often as you like. */
typedef uint32_t strobe_name;

/* STROBE_ANNOTATE_ABI of the library that runs. */
int strobe_annotate_abi(void);

/* Begins recording of this process into `folder`, with the defaults of strobe::record::Options. 0: done. Otherwise the
 * exit code of the failure, and one line about it in `message` (which may be NULL), cut to `message_bytes`. */
int strobe_start(const char* folder, char* message, size_t message_bytes);
/* The same with Options::gpu: also what this process does on NVIDIA devices, where there is a driver. */
int strobe_start_with_gpu(const char* folder, char* message, size_t message_bytes);
/* Ends it; the number of records that were lost goes to `dropped` (which may be NULL). Returns as strobe_start. */
int strobe_stop(uint64_t* dropped, char* message, size_t message_bytes);
int strobe_recording(void);

strobe_name strobe_intern(const char* text);

/* A nested interval on the calling thread. */
void strobe_push(strobe_name name, int64_t frame);
void strobe_push_text(const char* name, int64_t frame); /* a name made at run time */
void strobe_pop(void);
/* Payload of the innermost open range of the thread. */
void strobe_arg_int(strobe_name key, int64_t value);
void strobe_arg_double(strobe_name key, double value);
void strobe_arg_text(strobe_name key, const char* value);

void strobe_arg_batch(int64_t index, int64_t items); /* which batch of the run, from 0, and how many items it holds */

/* What kind of thing a range or mark is: a name within a domain (NULL or "": the program itself). Valid for the life of
 * the process; make each once. 0 is none. */
typedef uint32_t strobe_category_t;
strobe_category_t strobe_category(const char* name, const char* domain);
void strobe_push_in(strobe_category_t category, strobe_name name, int64_t frame);
void strobe_push_text_in(strobe_category_t category, const char* name, int64_t frame);

/* A payload with its key, for what has no inside: marks and asynchronous intervals. */
enum { STROBE_ARG_INT = 0, STROBE_ARG_DOUBLE = 1, STROBE_ARG_TEXT = 2 };
typedef struct strobe_arg {
  strobe_name key;
  uint32_t type; /* STROBE_ARG_...; others are left out */
  union {
    int64_t integer;
    double real;
    const char* text;
  } value;
} strobe_arg;

/* An interval that may end on another thread. */
void strobe_async_begin(strobe_name name, uint64_t id, int64_t frame);
void strobe_async_end(strobe_name name, uint64_t id);
uint64_t strobe_new_id(void);
/* The same with a category (or 0) and payload; those with `_text` take a name made at run time. */
void strobe_async_begin_in(strobe_category_t category, strobe_name name, uint64_t id, int64_t frame,
                           const strobe_arg* args, size_t arg_count);
void strobe_async_begin_text_in(strobe_category_t category, const char* name, uint64_t id, int64_t frame,
                                const strobe_arg* args, size_t arg_count);
void strobe_async_end_args(strobe_name name, uint64_t id, const strobe_arg* args, size_t arg_count);
void strobe_async_end_text(const char* name, uint64_t id, const strobe_arg* args, size_t arg_count);
/* By id alone: ends the latest interval of this process that began with it. */
void strobe_async_end_id(uint64_t id, const strobe_arg* args, size_t arg_count);

/* An arrow between the innermost open ranges of two places. */
void strobe_flow_out(strobe_name name, uint64_t id);
void strobe_flow_in(strobe_name name, uint64_t id);

void strobe_mark(strobe_name name, int64_t frame);
void strobe_mark_in(strobe_category_t category, strobe_name name, int64_t frame, const strobe_arg* args,
                    size_t arg_count);
void strobe_mark_text_in(strobe_category_t category, const char* name, int64_t frame, const strobe_arg* args,
                         size_t arg_count);
/* Of the process, or of the calling thread. */
void strobe_counter(strobe_name name, double value);
void strobe_counter_int(strobe_name name, int64_t value);
void strobe_thread_counter(strobe_name name, double value);
void strobe_thread_counter_int(strobe_name name, int64_t value);
void strobe_name_thread(const char* name);
void strobe_fact(const char* key, const char* value);

#ifdef __cplusplus
}
#endif

#endif /* STROBE_RECORD_ANNOTATE_C_H_ */

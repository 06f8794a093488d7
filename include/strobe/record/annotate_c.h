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

/* An interval that may end on another thread. */
void strobe_async_begin(strobe_name name, uint64_t id, int64_t frame);
void strobe_async_end(strobe_name name, uint64_t id);
uint64_t strobe_new_id(void);

/* An arrow between the innermost open ranges of two places. */
void strobe_flow_out(strobe_name name, uint64_t id);
void strobe_flow_in(strobe_name name, uint64_t id);

void strobe_mark(strobe_name name, int64_t frame);
void strobe_counter(strobe_name name, double value);
void strobe_name_thread(const char* name);
void strobe_fact(const char* key, const char* value);

#ifdef __cplusplus
}
#endif

#endif /* STROBE_RECORD_ANNOTATE_C_H_ */

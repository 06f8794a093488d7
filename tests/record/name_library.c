/* Loaded and unloaded by a test: its text is gone afterwards. */
__attribute__((visibility("default"))) const char* name_of_unloaded_library(void) {
  return "a literal of an unloaded library";
}

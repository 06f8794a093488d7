#What the pipeline records is read back with the rooms that users read it with.
target_link_libraries(strobe_pipeline_test PRIVATE strobe_trace strobe_analyze)

# What the pipeline records is read back with the rooms that users read it with.
target_link_libraries(strobe_pipeline_test PRIVATE strobe_trace strobe_analyze)
# The tests open real engines.
foreach(name torch opencv)
  if(TARGET strobe_engine_${name})
    add_dependencies(strobe_pipeline_test strobe_engine_${name})
  endif()
endforeach()

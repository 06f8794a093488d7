target_link_libraries(strobe_exporters_test PRIVATE strobe_importers nlohmann_json::nlohmann_json)

# What other programs say of the files: Perfetto's UI and its trace_processor, in a browser.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET strobe)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
  foreach(script ${scripts})
    get_filename_component(noun ${script} NAME_WE)
    add_test(NAME exporters.${noun} COMMAND ${Python3_EXECUTABLE} -m unittest -v ${noun}
             WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    set_tests_properties(exporters.${noun} PROPERTIES TIMEOUT 900 PROCESSORS 2
      ENVIRONMENT "STROBE=$<TARGET_FILE:strobe>;STROBE_SHARED_DATA=${STROBE_SHARED_DATA};PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/cli:${CMAKE_CURRENT_SOURCE_DIR}/report;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endif()

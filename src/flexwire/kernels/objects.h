/* Places in objects, and C functions, that Cython has no words for. */
#ifndef FLEXWIRE_OBJECTS_H
#define FLEXWIRE_OBJECTS_H
#include <Python.h>
/* The place in an object that is so many bytes behind its beginning. */
#define field_at(object, slot) ((PyObject **)((char *)(object) + (slot)))
/* A Python object of a reference that is given away; NULL raises the error that is set. */
#define as_object(object) (object)
/* A function that is called with its arguments side by side, as METH_FASTCALL has it. */
#define as_method(function) ((PyCFunction)(void (*)(void))(function))
#endif

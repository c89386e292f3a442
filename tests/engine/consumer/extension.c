// extension.c: what an author of a C extension module writes to use hdicore's C table
// SPDX-License-Identifier: BSD-3-Clause
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hdicore/c_api.h"

static const hdicore_api* api;

// hdi(values: bytes of doubles, coverage) -> (lower, upper)
static PyObject* hdi(PyObject* Py_UNUSED(module), PyObject* arguments) {
    const char* values;
    Py_ssize_t n_bytes;
    double coverage;
    if (!PyArg_ParseTuple(arguments, "y#d", &values, &n_bytes, &coverage)) return NULL;
    double interval[2];
    hdicore_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        api->weighted_hdi((const double*)(const void*)values, NULL,
                          n_bytes / (Py_ssize_t)sizeof(double), &coverage, 1, interval, &error);
    Py_END_ALLOW_THREADS;
    if (status != hdicore_ok) return PyErr_Format(PyExc_ValueError, "%s", error.message);
    return Py_BuildValue("dd", interval[0], interval[1]);
}

// mean(index: hdicore.LeafIndex, leaves: bytes of int32, those of one row) -> float
static PyObject* mean(PyObject* Py_UNUSED(module), PyObject* arguments) {
    PyObject* object;
    const char* leaves;
    Py_ssize_t n_bytes;
    if (!PyArg_ParseTuple(arguments, "Oy#", &object, &leaves, &n_bytes)) return NULL;
    PyObject* capsule = PyObject_CallMethod(object, "__hdicore_index__", NULL);
    if (capsule == NULL) return NULL;
    const hdicore_index* borrowed = PyCapsule_GetPointer(capsule, "hdicore.index");
    hdicore_index* index = borrowed == NULL ? NULL : api->index_share(borrowed);
    Py_DECREF(capsule);
    if (index == NULL) return PyErr_Occurred() ? NULL : PyErr_NoMemory();

    PyObject* result = NULL;
    double found;
    hdicore_error error;
    if (api->index_n_outputs(index) != 1 ||
        api->index_n_trees(index) * (Py_ssize_t)sizeof(int32_t) != n_bytes) {
        PyErr_SetString(PyExc_ValueError, "leaves must be those of one row and output");
    } else if (api->index_mean(index, (const int32_t*)(const void*)leaves, 1, 1, &found, &error) !=
               hdicore_ok) {
        PyErr_SetString(PyExc_ValueError, error.message);
    } else {
        result = PyFloat_FromDouble(found);
    }
    api->index_release(index);
    return result;
}

static PyMethodDef methods[] = {
    {"hdi", hdi, METH_VARARGS, NULL}, {"mean", mean, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_extension(void) {
    api = PyCapsule_Import("hdicore._core.c_api", 0);
    if (api == NULL) return NULL;
    if (api->version < HDICORE_API_VERSION) {
        PyErr_SetString(PyExc_ImportError, "hdicore is older than what this was compiled with");
        return NULL;
    }
    return PyModule_Create(&definition);
}

/* Keeps coverage's tracer away from code that it does not count. Part of uncounted_packages.py, which says why.

   Python 3.11 asks a function for each frame that it runs (PEP 523). This one takes the tracer from the thread
   before the frame of a package, and gives it back to a frame of ours that the package calls, and at the end.
   sys.gettrace() and sys.settrace() see no difference: the tracer's object stays where it is. */

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_frame.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "for Python 3.11 only: on later ones, coverage counts with sys.monitoring, which needs no help"
#endif

static PyTypeObject *tracer_type;
static Py_tracefunc traced;  /* coverage's function; NULL before the first frame that it is called for */
static Py_ssize_t slot = -1; /* where a code object keeps which of the two it is: */
static void *const OURS = (void *)1, *const OF_A_PACKAGE = (void *)2;

static void *
origin(PyCodeObject *code)
{
    void *known = NULL;
    if (_PyCode_GetExtra((PyObject *)code, slot, &known) == 0 && known != NULL) {
        return known;
    }
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    if (file == NULL) {
        PyErr_Clear();
        return OURS;
    }
    known = file[0] == '<' || strstr(file, "/lib/python3.") || strstr(file, "/tests/") ? OF_A_PACKAGE : OURS;
    if (_PyCode_SetExtra((PyObject *)code, slot, known) != 0) {
        PyErr_Clear();
    }
    return known;
}

static void
set_function(PyThreadState *thread, Py_tracefunc function)
{
    thread->c_tracefunc = function;
    thread->cframe->use_tracing = function != NULL || thread->c_profilefunc != NULL ? 255 : 0;
}

static PyObject *
evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwing)
{
    PyObject *tracer = thread->c_traceobj;
    Py_tracefunc before = thread->c_tracefunc;
    /* Another tracer, or coverage's at work or not begun: Python calls it first by a function of its own. */
    if (tracer == NULL || Py_TYPE(tracer) != tracer_type || thread->tracing ||
        (before != NULL && traced != NULL && before != traced)) {
        return _PyEval_EvalFrameDefault(thread, frame, throwing);
    }
    if (traced == NULL) {
        traced = before;
    }
    set_function(thread, origin(frame->f_code) == OURS ? traced : NULL);
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwing);
    if (thread->c_traceobj == tracer) {
        set_function(thread, before);
    }
    return result;
}

static PyObject *
keep_off(PyObject *Py_UNUSED(module), PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "keep_off takes the class of coverage's tracer");
        return NULL;
    }
    if (slot < 0) {
        slot = _PyEval_RequestCodeExtraIndex(NULL);
        if (slot < 0) {
            PyErr_SetString(PyExc_RuntimeError, "code objects have no place left for what is known of them");
            return NULL;
        }
        tracer_type = (PyTypeObject *)Py_NewRef(type);
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"keep_off", keep_off, METH_O, "Trace frames of packages no more with tracers of this class."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_uncounted_packages", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__uncounted_packages(void)
{
    return PyModule_Create(&definition);
}

/* Memory of the libraries that OpenCL brings into the process: the code of a whole compiler, of which runs need little. */
#ifndef SMARTMEM_DRIVER_PAGES_H
#define SMARTMEM_DRIVER_PAGES_H

/* Notes which libraries the process has before it opens OpenCL: those are the application's. */
void driver_pages_before(void);
/* Notes, the first time, which ones came since. */
void driver_pages_after(void);
/* Has the system take back the pages of their code and tables, which it reads again from their files where they are
 * needed, as when memory is short. Pages that anybody has written to stay. */
void driver_pages_rest(void);

#endif

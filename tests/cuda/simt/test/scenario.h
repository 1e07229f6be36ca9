/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whose subject ends the process: each scenario runs in a child, and its exit status and what
   it says on stderr are compared with what is expected. */
#ifndef TESTS_CUDA_SIMT_TEST_SCENARIO_H
#define TESTS_CUDA_SIMT_TEST_SCENARIO_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#ifdef __SANITIZE_THREAD__ // which would wait a second for other threads at each exit
extern "C" inline __attribute__((used)) const char *__tsan_default_options(void) {
    return "atexit_sleep_ms=0";
}
#endif

struct scenario {
    const char *name;
    void (*run)(void);
    int status;       // expected exit status: 0, or 97 where the emulator refuses
    const char *says; // part of stderr, or nullptr
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

inline std::string run_scenario(const struct scenario &s, int *status) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        s.run();
        _exit(0); // what a scenario leaves behind is no leak
    }
    close(ends[1]);
    std::string said;
    char part[4096];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, size_t(n));
    close(ends[0]);
    waitpid(child, status, 0);
    return said;
}

template <int N> int run_scenarios(const struct scenario (&list)[N]) {
    int failed = 0;
    for (const struct scenario &s : list) {
        int status;
        const std::string said = run_scenario(s, &status);
        const bool right = WIFEXITED(status) && WEXITSTATUS(status) == s.status &&
                           (!s.says || said.find(s.says) != std::string::npos);
        printf("%s %s\n", right ? "ok  " : "FAIL", s.name);
        if (right) continue;
        failed++;
        printf("     status %04x, wanted exit %d and '%s'; it said:\n%s", unsigned(status),
               s.status, s.says ? s.says : "", said.c_str());
    }
    return failed != 0;
}

#endif

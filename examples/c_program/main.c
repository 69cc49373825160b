/* Name the types of files: file_type FILE... (build.py builds it).
 *
 * Magika's model reads 2048 numbers: the first 1024 bytes of a file and the last 1024, both without
 * the white space around the content, and 256 where there is no byte. */
#include <ctype.h>
#include <stdio.h>

#include "libmagika.h"

enum { BLOCK = 4096, HALF = 1024, NO_BYTE = 256 };

static const char* const labels[] = {
#include "labels.h"
};
enum { LABELS = sizeof labels / sizeof *labels };

static int read_features(const char* path, int32_t features[2 * HALF]) {
  unsigned char block[BLOCK];
  FILE* file = fopen(path, "rb");
  if (file == NULL) return -1;
  for (int i = 0; i < 2 * HALF; i++) features[i] = NO_BYTE;

  size_t length = fread(block, 1, BLOCK, file), first = 0;
  while (first < length && isspace(block[first])) first++;
  for (size_t i = 0; i < HALF && first + i < length; i++) features[i] = block[first + i];

  if (fseek(file, -BLOCK, SEEK_END) != 0) rewind(file); /* a file shorter than a block */
  length = fread(block, 1, BLOCK, file);
  while (length > 0 && isspace(block[length - 1])) length--;
  for (size_t i = 1; i <= HALF && i <= length; i++) features[2 * HALF - i] = block[length - i];

  int failed = ferror(file);
  fclose(file);
  return failed ? -1 : 0;
}

int main(int count, char** paths) {
  for (int i = 1; i < count; i++) {
    int32_t features[2 * HALF];
    float scores[LABELS];
    if (read_features(paths[i], features) != 0) {
      perror(paths[i]);
      return 1;
    }
    const void* inputs[magika_inputs] = {features};
    void* outputs[magika_outputs] = {scores};
    const int64_t dims[magika_dims] = {1}; /* one file at a time */
    int32_t status = magika_run(inputs, outputs, dims);
    if (status != 0) {
      fprintf(stderr, "magika_run: status %d\n", (int)status);
      return 1;
    }
    int best = 0;
    for (int label = 1; label < LABELS; label++)
      if (scores[label] > scores[best]) best = label;
    printf("%s: %s %.3f\n", paths[i], labels[best], scores[best]);
  }
  magika_shutdown();
  return 0;
}

// Command zipper packs one program as a function's archive.
//
// It guarantees that the same program gives the same bytes: the archive has one
// entry, bootstrap, of mode 0755 and a fixed time, and nothing of the machine.
package main

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	out := flag.String("o", "", "the archive to write")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "zipper:", err)
		os.Exit(1)
	}
}

func run(out string, args []string) error {
	if out == "" || len(args) != 1 {
		return errors.New("usage: zipper -o ARCHIVE PROGRAM")
	}
	in, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer in.Close()
	// Written under another name first: a reader never sees half an archive.
	part := out + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	info, err := pack(f, in)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s %.1f MB\n", out, float64(info)/1e6)
	return err
}

// pack writes the archive and returns its size in bytes.
func pack(w io.Writer, program io.Reader) (int64, error) {
	size := &counter{w: w}
	z := zip.NewWriter(size)
	// The best compression: an archive is made once and fetched at every cold start.
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(0o755)
	entry, err := z.CreateHeader(h)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(entry, program); err != nil {
		return 0, err
	}
	err = z.Close()
	return size.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

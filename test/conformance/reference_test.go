package conformance

import "testing"

func TestReferenceClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.Script(ReferenceReplies()...)
	findings, err := b.stock(t).Reference(t.Context(), "testdata/reference.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
